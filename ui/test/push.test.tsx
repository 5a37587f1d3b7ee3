// Notifications: why there can be none, one tap to have them, and what the worker does.
// @ts-expect-error: tests run in Node, whose types the page does not have
import { readFileSync } from "node:fs";
import { fireEvent, render, screen, waitFor } from "@testing-library/preact";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Link } from "../src/link";
import { IDLE_MS, SAY_MS, sayFront } from "../src/push/front";
import { Notifications } from "../src/push/section";
import { obstacle } from "../src/push/subscribe";
import { go } from "../src/router";
import type { ClientFrame, PushState } from "../src/wire";

const KEY = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
const asked: { method: string; path: string; body: unknown }[] = [];
let state: PushState;

function host(answers: Record<string, () => unknown>) {
  vi.stubGlobal("fetch", async (path: string, { method, body }: { method: string; body?: string }) => {
    asked.push({ method, path, body: body ? JSON.parse(body) : null });
    const answer = answers[`${method} ${path.replace("/api", "")}`];
    return answer ? new Response(JSON.stringify(answer() ?? null)) : new Response("{}", { status: 404 });
  });
}

/** A browser that can be told, as far as tests have one. */
function able(permission = "default") {
  const subscription = {
    options: { applicationServerKey: null },
    toJSON: () => ({ endpoint: "https://push.example.org/1", keys: { p256dh: "P", auth: "A" } }),
    unsubscribe: vi.fn(async () => true),
  };
  const pushManager = { getSubscription: async () => null, subscribe: vi.fn(async (_: unknown) => subscription) };
  const registration = { pushManager };
  vi.stubGlobal("isSecureContext", true);
  vi.stubGlobal("PushManager", class {});
  vi.stubGlobal("Notification", { permission, requestPermission: vi.fn(async () => (permission === "default" ? "granted" : permission)) });
  const workers = { addEventListener: vi.fn(), register: async () => registration, ready: Promise.resolve(registration) };
  Object.defineProperty(navigator, "serviceWorker", { configurable: true, value: workers });
  return pushManager;
}

const device = { sign_in: "me", agent: "A phone", service: "push.example.org", names_only: false, made_at_ms: 1, told_at_ms: null, waiting: 0, problem: null };

beforeEach(() => {
  asked.length = 0;
  state = { key: null, devices: [], own: "me", settle_s: 30 };
  localStorage.clear();
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  Reflect.deleteProperty(navigator, "serviceWorker");
  document.body.replaceChildren();
});

it("says why this browser cannot be told", () => {
  vi.stubGlobal("isSecureContext", false);
  expect(obstacle()).toBe("plain-http");
  vi.stubGlobal("isSecureContext", true);
  expect(obstacle()).toBe("unsupported");
  vi.spyOn(navigator, "userAgent", "get").mockReturnValue("Mozilla/5.0 (iPhone; CPU iPhone OS 18_4 like Mac OS X)");
  expect(obstacle()).toBe("home-screen");
  vi.restoreAllMocks();
  able("denied");
  expect(obstacle()).toBe("denied");
  able();
  expect(obstacle()).toBeNull();
});

it("subscribes with one tap and hands the host what it needs", async () => {
  const manager = able();
  host({
    "GET /push": () => state,
    "POST /push/key": () => ({ key: KEY }),
    "POST /push": () => {
      state = { ...state, key: KEY, devices: [device] };
      return device;
    },
  });
  render(<Notifications />);
  fireEvent.click(await screen.findByText("Notify me here"));
  await screen.findByText("This browser is told");
  expect(asked.find((one) => one.method === "POST" && one.path === "/api/push")?.body).toEqual({ endpoint: "https://push.example.org/1", p256dh: "P", auth: "A", names_only: false });
  const options = manager.subscribe.mock.calls[0]?.[0] as { userVisibleOnly: boolean; applicationServerKey: Uint8Array };
  expect(options.userVisibleOnly).toBe(true);
  expect([options.applicationServerKey.length, options.applicationServerKey[0]]).toEqual([65, 4]);
});

it("shows every hop of a test, and the device's own trouble", async () => {
  able("granted");
  state = { ...state, key: KEY, devices: [{ ...device, problem: "the push service answered 503" }, { ...device, sign_in: "other", agent: "A laptop" }] };
  const hops = [
    { what: "subscribed", tint: "good", text: "through push.example.org" },
    { what: "push service", tint: "bad", text: "it answered 403" },
  ];
  host({ "GET /push": () => state, "POST /push/test": () => ({ hops, tag: "test-1" }) });
  const { container } = render(<Notifications />);
  expect(await screen.findByText("the push service answered 503")).toBeTruthy();
  expect(screen.getByText("A laptop")).toBeTruthy();
  fireEvent.click(screen.getByText("Try it"));
  await waitFor(() => expect(container.querySelectorAll("[data-hops] li").length).toBe(2));
  expect(container.querySelector("[data-hops]")?.textContent).toContain("it answered 403");
});

it("says what is in front while it is, and that it is not any more", () => {
  vi.useFakeTimers();
  const sent: ClientFrame[] = [];
  const wire = { send: (text: string) => sent.push(JSON.parse(text)), close: () => undefined, onopen: null as (() => void) | null, onmessage: null, onclose: null };
  const link = new Link({ connect: () => wire, signedIn: async () => true, silenceMs: 1e9 });
  link.start();
  wire.onopen?.();
  let focused = true;
  vi.spyOn(document, "hasFocus").mockImplementation(() => focused);
  vi.spyOn(document, "visibilityState", "get").mockReturnValue("visible");
  go("/t/abc");
  const stop = sayFront(link);
  expect(sent).toEqual([{ frame: "front", thread: "abc" }]);
  vi.advanceTimersByTime(SAY_MS);
  expect(sent.length).toBe(2);
  focused = false;
  dispatchEvent(new Event("blur"));
  expect(sent.at(-1)).toEqual({ frame: "front" });
  const said = sent.length;
  vi.advanceTimersByTime(5 * SAY_MS);
  expect(sent.length).toBe(said);
  focused = true;
  dispatchEvent(new Event("focus"));
  expect(sent.at(-1)).toEqual({ frame: "front", thread: "abc" });
  // Nobody touches it: in front of nobody.
  vi.advanceTimersByTime(IDLE_MS + SAY_MS);
  expect(sent.at(-1)).toEqual({ frame: "front" });
  stop();
  link.stop();
});

/** The worker as it is served, with a browser round it. */
function serving() {
  const handlers = new Map<string, (event: unknown) => void>();
  const shown: { title: string; options: Record<string, unknown> }[] = [];
  const opened: string[] = [];
  const self = {
    location: { origin: "https://boxes.example.org" },
    addEventListener: (name: string, handler: (event: unknown) => void) => handlers.set(name, handler),
    registration: { showNotification: async (title: string, options: Record<string, unknown>) => void shown.push({ title, options }) },
    clients: { matchAll: async () => [], openWindow: async (path: string) => void opened.push(path), claim: async () => undefined },
    skipWaiting: () => undefined,
  };
  new Function("self", readFileSync("public/sw.js", "utf8"))(self);
  const event = async (name: string, fields: object) => {
    const waits: Promise<unknown>[] = [];
    handlers.get(name)?.({ ...fields, waitUntil: (wait: Promise<unknown>) => waits.push(wait) });
    await Promise.all(waits);
  };
  return { event, shown, opened, handlers };
}

it("shows what the host tells, also when it cannot be read", async () => {
  const { event, shown } = serving();
  const notification = { title: "⚠ demo", body: "May it: rm", tag: "d-3", navigate: "https://boxes.example.org/t/abc" };
  await event("push", { data: { json: () => ({ web_push: 8030, notification }) } });
  await event("push", { data: null });
  expect(shown.map((one) => [one.title, one.options.tag])).toEqual([
    ["⚠ demo", "d-3"],
    ["Boxes", "boxes"],
  ]);
  expect(shown[0]?.options.data).toEqual({ navigate: "https://boxes.example.org/t/abc" });
});

it("leads to the page and nowhere else", async () => {
  const { event, opened } = serving();
  const tapped = (navigate: string) => event("notificationclick", { notification: { close: () => undefined, data: { navigate } } });
  await tapped("https://boxes.example.org/t/abc");
  await tapped("https://evil.example/t/abc");
  expect(opened).toEqual(["/t/abc", "/"]);
});

it("answers no request but what another app shares", () => {
  const { handlers } = serving();
  const respondWith = vi.fn();
  for (const [method, url] of [
    ["GET", "https://boxes.example.org/"],
    ["GET", "https://boxes.example.org/assets/index-abc.js"],
    ["GET", "https://boxes.example.org/share"],
    ["POST", "https://boxes.example.org/api/threads"],
  ]) {
    handlers.get("fetch")?.({ request: { method, url }, respondWith });
  }
  expect(respondWith).not.toHaveBeenCalled();
});
