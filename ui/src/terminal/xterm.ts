// xterm.js under the page's policy, and without what a program in a box could do to a reader.
import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";

/** Sequences that would reach past the screen (OSC): window titles and icons, folders, links whose text hides where they lead,
 * colours of the page, notifications, the clipboard, and what other terminals made of more numbers. */
const SWALLOWED = [0, 1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 50, 52, 99, 104, 110, 111, 112, 133, 633, 777, 1337];
const SCROLLBACK_LINES = 5_000;

/** Those of the page, as it is now. */
export function colours(): { background: string; foreground: string; cursor: string; selectionBackground: string } {
  const dark = document.documentElement.dataset["theme"] === "dark";
  return dark ? { background: "#0b0e14", foreground: "#e6e6e6", cursor: "#e6e6e6", selectionBackground: "#2c4f8f" } : { background: "#ffffff", foreground: "#1b1f27", cursor: "#1b1f27", selectionBackground: "#b6d2ff" };
}

export function terminal(): { terminal: Terminal; fit: FitAddon } {
  const made = new Terminal({
    scrollback: SCROLLBACK_LINES,
    fontSize: 14,
    fontFamily: "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace",
    cursorBlink: false,
    screenReaderMode: false,
    convertEol: false,
    // What a program prints in the colour of the ground is read all the same.
    minimumContrastRatio: 4.5,
    // Nothing is opened and nothing is told of the window.
    windowOptions: {},
    linkHandler: { activate: () => undefined },
    theme: colours(),
  });
  for (const kind of SWALLOWED) made.parser.registerOscHandler(kind, () => true);
  const fit = new FitAddon();
  made.loadAddon(fit);
  return { terminal: made, fit };
}

/** Terminals that are open. */
let open = 0;

/** The page's policy allows no style in the markup, which xterm writes wherever it is: while a terminal is open, a style
 * sheet in the document becomes one of the document, and a style in an attribute one of the element. Both are allowed. */
export function carefully(): () => void {
  open += 1;
  if (open === 1) {
    const createElement = Document.prototype.createElement;
    document.createElement = ((name: string, options?: ElementCreationOptions): HTMLElement => {
      if (name === "style") return sheet(createElement);
      const element = createElement.call(document, name, options);
      if (name === "span") {
        element.setAttribute = (attribute: string, value: string) => {
          if (attribute === "style") element.style.cssText = value;
          else Element.prototype.setAttribute.call(element, attribute, value);
        };
      }
      return element;
    }) as typeof document.createElement;
  }
  return () => {
    open -= 1;
    // The document's own again, which is its prototype's.
    if (open === 0) Reflect.deleteProperty(document, "createElement");
  };
}

/** Stands for a `<style>`: its text becomes a sheet of the document. */
function sheet(createElement: typeof document.createElement): HTMLElement {
  const made = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, made];
  const element = createElement.call(document, "template");
  let text = "";
  Object.defineProperty(element, "textContent", {
    get: () => text,
    set: (value: string) => {
      text = value;
      made.replaceSync(value);
    },
  });
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== made);
    Element.prototype.remove.call(element);
  };
  return element;
}
