// What a person is asked cannot be answered by accident, nor be something else than it looks.
import { fireEvent, render, screen } from "@testing-library/preact";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { app } from "../src/app";
import { DEAD_MS, DecisionCard } from "../src/thread/decision";
import { unhidden } from "../src/ui/hidden";
import { filled, missing } from "../src/thread/form";
import type { Decision, Form } from "../src/wire";

const asked = (fields: Partial<Decision> = {}): Decision => ({
  decision: 7,
  box_id: "b" as Decision["box_id"],
  about: "permission",
  title: "rm -rf target",
  options: [
    { id: "no", label: "No", kind: "reject_once" },
    { id: "yes", label: "Yes", kind: "allow_once" },
  ],
  state: { state: "open" },
  ...fields,
});

beforeEach(() => {
  vi.useFakeTimers();
  app.answered.set(new Map());
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  document.body.replaceChildren();
});

it("does nothing in the first moments, then what was tapped", () => {
  const answer = vi.spyOn(app, "answer").mockResolvedValue(null);
  render(<DecisionCard decision={asked()} />);
  vi.advanceTimersByTime(DEAD_MS - 50);
  fireEvent.click(screen.getByText("Yes"));
  expect(answer).not.toHaveBeenCalled();
  vi.advanceTimersByTime(100);
  fireEvent.click(screen.getByText("Yes"));
  expect(answer).toHaveBeenCalledExactlyOnceWith(7, "yes");
});

it("has the agent's options in the agent's order and words", () => {
  render(<DecisionCard decision={asked()} />);
  expect(screen.getAllByRole("button").map((button) => button.textContent)).toEqual(["No", "Yes"]);
});

it("makes visible what hides, and says so", () => {
  expect(unhidden("a\u202eb\u200bc")).toEqual({ text: "a⟨U+202E⟩b⟨U+200B⟩c", count: 2 });
  expect(unhidden("grüße 👋 \t\n")).toEqual({ text: "grüße 👋 \t\n", count: 0 });
  render(<DecisionCard decision={asked({ title: "rm \u202etxt.cod" })} />);
  expect(screen.getByRole("alert").textContent).toContain("hide or turn text around");
});

it("says who was faster", async () => {
  vi.spyOn(app.link, "command").mockResolvedValue({ type: "decision-over", kind: "failed", title: "decision `7` was answered by ann" });
  render(<DecisionCard decision={asked()} />);
  vi.advanceTimersByTime(DEAD_MS + 50);
  fireEvent.click(screen.getByText("No"));
  await vi.advanceTimersByTimeAsync(10);
  expect(screen.getByRole("alert").textContent).toBe("Decision 7 was answered by ann");
});

const form: Form = {
  fields: [
    { name: "colour", title: "Colour", kind: { type: "one", choices: [{ value: "red", label: "Red" }] }, required: true },
    { name: "colour_custom", title: "Another", kind: { type: "text" }, required: false, instead_of: "colour" },
    { name: "count", title: "Count", kind: { type: "number", whole: true }, required: true, default: 3 },
  ],
};

it("knows what is missing in a form, and leaves out what was left alone", () => {
  expect(missing(form, {})?.name).toBe("colour");
  expect(missing(form, { colour: "red" })).toBeUndefined();
  expect(missing(form, { colour_custom: "teal" })).toBeUndefined();
  expect(filled(form, { colour: "", colour_custom: "teal" })).toEqual({ colour_custom: "teal" });
});
