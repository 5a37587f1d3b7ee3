// Characters that hide.
import { render } from "@testing-library/preact";
import { expect, it } from "vitest";
import { Plan } from "../src/thread/views";
import { DiffCard } from "../src/thread/tools";
import { Shown } from "../src/ui/hidden";

it("marks what hides and leaves the rest as it is", () => {
  const page = render(<Shown text={"rm a\u202etxt.b\u200b"} />).container;
  expect(page.textContent).toBe("rm a⟨U+202E⟩txt.b⟨U+200B⟩");
  expect([...page.querySelectorAll("[data-hidden]")].map((mark) => mark.textContent)).toEqual(["⟨U+202E⟩", "⟨U+200B⟩"]);
  expect(render(<Shown text="plain ünïcode 🙂" />).container.innerHTML).toBe("plain ünïcode 🙂");
});

it("marks it in plans and in differences", () => {
  const plan = render(<Plan entries={[{ text: "read\u2066it", status: "pending", priority: "medium" } as never]} />).container;
  expect(plan.querySelectorAll("[data-hidden]")).toHaveLength(1);
  const diff = render(<DiffCard diff={{ type: "diff", path: "/workspace/a\u200b.sh", old_text: null, new_text: "x\u2067y\n" }} />).container;
  expect(diff.querySelectorAll("[data-hidden]")).toHaveLength(2);
});
