// The host over HTTP: everything that is not streamed.
import type { Problem } from "./wire";

/** What the host refused, or why it could not be asked. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly problem: Problem,
  ) {
    super(inWords(problem));
  }
}

export function inWords(problem: Problem): string {
  const title = problem.title.replaceAll("`", "");
  const said = problem.cause ? `${title}: ${problem.cause.replaceAll("`", "")}` : title;
  return said ? said[0]!.toUpperCase() + said.slice(1) : "It did not work";
}

/** What pairing left here for this origin. A cookie alone, which other ports of a host see too, lets nobody in. */
export function proof(): string {
  try {
    return localStorage.getItem("boxes:proof") ?? "none";
  } catch {
    return "none";
  }
}

type Method = "GET" | "POST" | "DELETE";

/** Asks the host. `T` is `null` where it answers nothing. */
export function ask<T>(method: Method, path: string, body?: unknown): Promise<T> {
  return request<T>(method, path, body === undefined ? undefined : JSON.stringify(body), "application/json");
}

/** Sends a file as it is. */
export function upload(path: string, file: File): Promise<{ path: string; media_type: string; bytes: number }> {
  return request("POST", path, file, "application/octet-stream");
}

/** A file of the host's, for an element of the page: addresses alone lead nobody to one. */
export async function download(path: string): Promise<Blob> {
  const answer = await fetch(`/api${path}`, { headers: { "x-box-proof": proof() }, credentials: "same-origin" });
  if (!answer.ok) throw new Refused(answer.status, { type: "unknown", kind: "failed", title: `the host answered ${answer.status}` });
  return answer.blob();
}

async function request<T>(method: Method, path: string, body: BodyInit | undefined, type: string): Promise<T> {
  const headers: Record<string, string> = { accept: "application/json", "x-box-proof": proof() };
  if (body !== undefined) headers["content-type"] = type;
  let answer: Response;
  try {
    answer = await fetch(`/api${path}`, { method, headers, credentials: "same-origin", ...(body === undefined ? {} : { body }) });
  } catch {
    throw new Refused(0, { type: "unreachable", kind: "failed", title: "the host does not answer" });
  }
  const text = await answer.text();
  const said = read(text);
  if (answer.ok) return said as T;
  const fallback: Problem = { type: "unknown", kind: "failed", title: `the host answered ${answer.status}` };
  throw new Refused(answer.status, said && typeof said === "object" && "title" in said ? (said as Problem) : fallback);
}

function read(text: string): unknown {
  if (text === "") return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** A random name for a command. `crypto.randomUUID` is missing on plain http. */
export function randomId(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
