// This browser's subscription: why there can be none, and how it is made, renewed and ended.
import { remember, remembered } from "../app";
import { ask } from "../rest";
import type { PushDevice, PushHop, PushState, PushTested } from "../wire";
import { hear, worker } from "./worker";

/** Why this browser cannot be told. */
export type Obstacle = "plain-http" | "home-screen" | "unsupported" | "denied";

const SHOWN_MS_MAX = 20_000;

const isIos = (): boolean => /iPhone|iPad|iPod/.test(navigator.userAgent) || (navigator.userAgent.includes("Macintosh") && navigator.maxTouchPoints > 1);

const isInstalled = (): boolean =>
  (navigator as { standalone?: boolean }).standalone === true || (typeof matchMedia === "function" && matchMedia("(display-mode: standalone)").matches);

export function obstacle(): Obstacle | null {
  if (!globalThis.isSecureContext) return "plain-http";
  // On iOS only a page on the home screen has notifications at all.
  if (isIos() && !isInstalled()) return "home-screen";
  if (!("serviceWorker" in navigator) || !("PushManager" in globalThis) || !("Notification" in globalThis)) return "unsupported";
  return Notification.permission === "denied" ? "denied" : null;
}

export const OBSTACLES: Record<Obstacle, { text: string; hint: string }> = {
  "plain-http": {
    text: "This page came over plain http, where browsers have no notifications.",
    hint: "Open it as localhost on the machine itself, or through a reverse proxy with HTTPS that `[page] hosts` names.",
  },
  "home-screen": {
    text: "On an iPhone or iPad only apps on the home screen are told.",
    hint: "Tap Share, then Add to Home Screen, and open Boxes from there.",
  },
  unsupported: { text: "This browser has no notifications.", hint: "A private window has none either; another browser does." },
  denied: {
    text: "Notifications of this page are blocked in this browser.",
    hint: "Allow them in the browser's settings for this page, then come back.",
  },
};

/** Asks the person, subscribes, and tells the host. Called from a tap: browsers ask only then. */
export async function subscribe(namesOnly: boolean): Promise<Obstacle | PushDevice> {
  const inTheWay = obstacle();
  if (inTheWay) return inTheWay;
  if ((await Notification.requestPermission()) !== "granted") return "denied";
  return make(namesOnly);
}

async function make(namesOnly: boolean): Promise<Obstacle | PushDevice> {
  const there = await worker();
  if (!there) return "unsupported";
  const { key } = await ask<{ key: string }>("POST", "/push/key");
  const ready = await navigator.serviceWorker.ready;
  const before = await ready.pushManager.getSubscription();
  // One that was made with another key cannot be used, nor be replaced without ending it.
  if (before && keyOf(before) !== key) await before.unsubscribe();
  const made = await ready.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: bytes(key) });
  const { endpoint, keys } = made.toJSON();
  const device = await ask<PushDevice>("POST", "/push", { endpoint, p256dh: keys?.p256dh, auth: keys?.auth, names_only: namesOnly });
  remember("push", { namesOnly });
  return device;
}

export async function unsubscribe(signIn: string): Promise<void> {
  remember("push", null);
  await ask("DELETE", `/push/${encodeURIComponent(signIn)}`);
  const there = await worker();
  await (await there?.pushManager.getSubscription())?.unsubscribe();
}

/** Puts right what broke without anybody seeing it: the browser gave its subscription up, or the
 * host has another key. Nothing is asked of the person. */
export async function renew(): Promise<void> {
  const wanted = remembered<{ namesOnly: boolean } | null>("push", null);
  if (!wanted || obstacle() || Notification.permission !== "granted") return;
  const state = await ask<PushState>("GET", "/push");
  const subscription = await (await worker())?.pushManager.getSubscription();
  const isKnown = state.devices.some((device) => device.sign_in === state.own);
  if (isKnown && subscription && state.key !== null && keyOf(subscription) === state.key && !lost(state)) return;
  await make(wanted.namesOnly);
}

/** The host says so of a device that subscribed with a key it has lost. */
const lost = (state: PushState): boolean => state.devices.some((device) => device.sign_in === state.own && device.problem?.includes("subscribed with"));

/** Writes to this browser, and follows the message until it is on the screen. */
export async function test(): Promise<PushHop[]> {
  const shown = new Set<string>();
  let tell: () => void = () => undefined;
  const stop = hear((word) => {
    if (word.worker !== "shown") return;
    shown.add(word.tag);
    tell();
  });
  try {
    const { hops, tag } = await ask<PushTested>("POST", "/push/test");
    if (hops.some((hop) => hop.tint === "bad")) return hops;
    const arrived = await new Promise<boolean>((done) => {
      const timer = setTimeout(() => done(false), SHOWN_MS_MAX);
      tell = () => {
        if (!shown.has(tag)) return;
        clearTimeout(timer);
        done(true);
      };
      tell();
    });
    const last: PushHop = arrived
      ? { what: "shown", tint: "good", text: "this browser showed it" }
      : { what: "shown", tint: "bad", text: `nothing came within ${SHOWN_MS_MAX / 1000} seconds; the system may hold notifications back` };
    return [...hops, last];
  } finally {
    stop();
  }
}

function keyOf(subscription: PushSubscription): string | null {
  const key = subscription.options.applicationServerKey;
  if (!key) return null;
  return btoa(String.fromCharCode(...new Uint8Array(key))).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function bytes(key: string): Uint8Array<ArrayBuffer> {
  const text = atob(key.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(text, (letter) => letter.charCodeAt(0));
}
