// Words of a search, highlighted where they stand: over the text, without changing it.

interface Highlights {
  set(name: string, highlight: unknown): void;
  delete(name: string): void;
}

/** Most places that are marked. */
const PLACES_MAX = 200;

/** Marks every place of each word below `element`, until it is called off. Browsers that cannot do so show the
 * frame round the row only. */
export function mark(element: Element, words: string): (() => void) | undefined {
  const highlights = (globalThis.CSS as unknown as { highlights?: Highlights } | undefined)?.highlights;
  const Highlight = (globalThis as unknown as { Highlight?: new (...ranges: Range[]) => unknown }).Highlight;
  const wanted = words.toLowerCase().split(/[\s"]+/).filter((word) => word !== "");
  if (!highlights || !Highlight || wanted.length === 0) return undefined;
  const ranges: Range[] = [];
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node && ranges.length < PLACES_MAX; node = walker.nextNode()) {
    const text = (node.textContent ?? "").toLowerCase();
    for (const word of wanted) {
      for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, at + word.length);
        ranges.push(range);
      }
    }
  }
  highlights.set("found", new Highlight(...ranges));
  return () => highlights.delete("found");
}
