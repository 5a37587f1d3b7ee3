// Where a person writes.
import { fireEvent, render, screen } from "@testing-library/preact";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { withAttachments, withoutAttachments } from "../src/thread/attach";
import { Composer, enterSends } from "../src/thread/composer";

const key = (over: Partial<Parameters<typeof enterSends>[0]> = {}) => ({ key: "Enter", shiftKey: false, isComposing: false, keyCode: 13, ...over });

beforeEach(() => localStorage.clear());
afterEach(() => document.body.replaceChildren());

it("sends by Enter at a keyboard, and never on a phone", () => {
  expect(enterSends(key(), false)).toBe(true);
  expect(enterSends(key({ shiftKey: true }), false)).toBe(false);
  expect(enterSends(key(), true)).toBe(false);
});

it("does not send the Enter that ends a word of an input method", () => {
  expect(enterSends(key({ isComposing: true }), false)).toBe(false);
  expect(enterSends(key({ keyCode: 229 }), false)).toBe(false);
});

const show = (props: Partial<Parameters<typeof Composer>[0]> = {}) => {
  const onSend = vi.fn();
  const onStop = vi.fn();
  const drawn = render(<Composer thread="t1" running={false} box={null} onSend={onSend} onStop={onStop} {...props} />);
  return { onSend, onStop, drawn, area: screen.getByLabelText("Prompt") as HTMLTextAreaElement };
};

it("keeps a draft for its thread until it is sent", () => {
  const { area, drawn } = show();
  fireEvent.input(area, { target: { value: "half a thought" } });
  drawn.unmount();
  const again = show();
  expect(again.area.value).toBe("half a thought");
  again.drawn.unmount();
  const other = show({ thread: "t2" });
  expect(other.area.value).toBe("");
  other.drawn.unmount();
  const last = show();
  fireEvent.submit(last.area.form!);
  expect(last.onSend).toHaveBeenCalledWith("half a thought");
  expect(last.area.value).toBe("");
  last.drawn.unmount();
  expect(show().area.value).toBe("");
});

it("has Stop beside Send while a turn runs, and never instead of it", () => {
  const { area, onSend, onStop } = show({ running: true });
  expect(screen.getByLabelText("Queue")).toBeTruthy();
  fireEvent.click(screen.getByLabelText("Stop the turn"));
  expect(onStop).toHaveBeenCalledOnce();
  expect(onSend).not.toHaveBeenCalled();
  fireEvent.input(area, { target: { value: "and then" } });
  fireEvent.click(screen.getByLabelText("Queue"));
  expect(onSend).toHaveBeenCalledWith("and then");
});

it("sends nothing empty and nothing too long", () => {
  const { area, onSend } = show();
  fireEvent.submit(area.form!);
  fireEvent.input(area, { target: { value: "   \n" } });
  fireEvent.submit(area.form!);
  fireEvent.input(area, { target: { value: "ü".repeat(60_001) } });
  fireEvent.submit(area.form!);
  expect(onSend).not.toHaveBeenCalled();
});

it("names attached files before the prompt, and shows them as files again", () => {
  const file = (name: string, path: string | null) => ({ id: name, name, size: 7, type: "image/png", path, failed: null, preview: null });
  const prompt = withAttachments("what is wrong here?", [file("shot.png", "/workspace/.box/attachments/shot.png"), file("late.png", null)]);
  expect(prompt).toBe("<attachments>\n- /workspace/.box/attachments/shot.png (image/png, 7 bytes)\n</attachments>\n\nwhat is wrong here?");
  expect(withoutAttachments(prompt)).toEqual({ files: [{ name: "shot.png", type: "image/png", about: "image/png, 7 B" }], text: "what is wrong here?" });
  expect(withoutAttachments("just words")).toEqual({ files: [], text: "just words" });
});
