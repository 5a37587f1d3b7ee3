// The page's worker (`public/sw.js`), and what it says.
import { go } from "../router";

type Word = { worker: "shown"; tag: string } | { worker: "open"; path: string } | { worker: "renew" };

const listeners = new Set<(word: Word) => void>();

/** Hears what the worker says, until the answer is called. */
export function hear(listener: (word: Word) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** A browser takes a worker's address only from a policy the host allows. */
function address(): string {
  const types = (globalThis as { trustedTypes?: { createPolicy(name: string, rules: object): { createScriptURL(url: string): unknown } } }).trustedTypes;
  if (!types) return "/sw.js";
  const policy = types.createPolicy("boxes", { createScriptURL: () => "/sw.js" });
  return policy.createScriptURL("") as string;
}

let registered: Promise<ServiceWorkerRegistration | null> | undefined;

/** The worker; none on plain http, where browsers have none. */
export function worker(): Promise<ServiceWorkerRegistration | null> {
  registered ??= register();
  return registered;
}

async function register(): Promise<ServiceWorkerRegistration | null> {
  const workers = navigator.serviceWorker as ServiceWorkerContainer | undefined;
  if (!globalThis.isSecureContext || !workers) return null;
  workers.addEventListener("message", (event: MessageEvent<Word>) => {
    const word = event.data;
    if (!word || typeof word !== "object") return;
    if (word.worker === "open" && typeof word.path === "string" && word.path.startsWith("/") && !word.path.startsWith("//")) go(word.path);
    for (const listener of [...listeners]) listener(word);
  });
  try {
    return await workers.register(address(), { updateViaCache: "none" });
  } catch {
    return null;
  }
}
