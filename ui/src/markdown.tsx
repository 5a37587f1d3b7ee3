// Markdown of agents as elements: marked's lexer, our own renderer. Raw HTML stays text, no
// script address becomes a link, and no picture of another machine is fetched.
import { type Token, type Tokens, lexer } from "marked";
import { Component, type ComponentChildren } from "preact";
import { memo, useMemo, useRef } from "react";

/** Where a link may lead. */
const SAFE = /^(https?:|mailto:|#)/i;

/** Quotes and lists within each other, so deep that reading them takes the stack. */
const DEEP = /^(?:[ \t]*(?:>|[*+-](?=[ \t])|\d{1,9}[.)](?=[ \t]))){24,}/m;
/** What emphasis is made of; reading it takes the square of how much there is. */
const MARKS = /[*_~[\]]/g;
const MARKS_MAX = 4_000;

/** The blocks of a text; of one that is made to be hard to read, the text as it is. */
function read(text: string): Token[] {
  const asItIs = (): Token[] => [{ type: "code", raw: text, text } as Token];
  if (DEEP.test(text) || (text.match(MARKS)?.length ?? 0) > MARKS_MAX) return asItIs();
  try {
    return lexer(text) as Token[];
  } catch {
    return asItIs();
  }
}

/** Shows the text as it is where its elements cannot be made; the rest of the page goes on. */
class Careful extends Component<{ text: string; children: ComponentChildren }, { failed: boolean }> {
  state = { failed: false };

  static getDerivedStateFromError() {
    return { failed: true };
  }

  render() {
    return this.state.failed ? <pre>{this.props.text}</pre> : this.props.children;
  }
}

/** The tokens of a text that grows: only its last two blocks are read again. */
export class Growing {
  #text = "";
  #done: Token[] = [];
  #from = 0;
  #tail: Token[] = [];

  read(text: string): Token[] {
    if (!text.startsWith(this.#text)) {
      this.#done = [];
      this.#from = 0;
    }
    this.#text = text;
    const tokens = read(text.slice(this.#from));
    const settled = Math.max(0, tokens.length - 2);
    for (const token of tokens.slice(0, settled)) {
      this.#done.push(token);
      this.#from += token.raw.length;
    }
    this.#tail = tokens.slice(settled);
    return [...this.#done, ...this.#tail];
  }
}

function inline(tokens: Token[] | undefined): ComponentChildren {
  return (tokens ?? []).map((token, index) => <Inline key={index} token={token} />);
}

function Inline({ token }: { token: Token }): ComponentChildren {
  switch (token.type) {
    case "strong":
      return <strong>{inline(token.tokens)}</strong>;
    case "em":
      return <em>{inline(token.tokens)}</em>;
    case "del":
      return <del>{inline(token.tokens)}</del>;
    case "codespan":
      return <code>{plain(token.text as string)}</code>;
    case "br":
      return <br />;
    case "link":
      return <Link href={token.href as string}>{inline(token.tokens)}</Link>;
    case "image":
      // Showing it would tell its server who reads this.
      return <Link href={token.href as string}>{`▧ ${(token.text as string) || (token.href as string)}`}</Link>;
    case "escape":
      return token.text as string;
    case "text":
      return token.tokens ? inline(token.tokens) : plain(token.text as string);
    default:
      return token.raw;
  }
}

/** marked leaves entities to the browser; as there is no innerHTML here, the common ones are read. */
function plain(text: string): string {
  const names: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'", nbsp: "\u00a0" };
  return text.replace(/&(amp|lt|gt|quot|#39|nbsp);/g, (all, name: string) => names[name] ?? all);
}

function Link({ href, children }: { href: string; children?: ComponentChildren }) {
  if (!SAFE.test(href)) return <>{children}</>;
  return (
    <a href={href} target="_blank" rel="noreferrer noopener">
      {children}
    </a>
  );
}

function Block({ token }: { token: Token }): ComponentChildren {
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading": {
      // The page's own heading is the first.
      const Tag = `h${Math.min(6, Math.max(2, (token as Tokens.Heading).depth))}` as "h2";
      return <Tag>{inline(token.tokens)}</Tag>;
    }
    case "paragraph":
      return <p>{inline(token.tokens)}</p>;
    case "text":
      return token.tokens ? <>{inline(token.tokens)}</> : <>{plain(token.raw)}</>;
    case "code":
      return (
        <div class="bleed">
          <pre tabIndex={0}>
            <code>{token.text as string}</code>
          </pre>
        </div>
      );
    case "blockquote":
      return <blockquote>{blocks(token.tokens)}</blockquote>;
    case "list": {
      const list = token as Tokens.List;
      const items = list.items.map((item, index) => (
        <li key={index}>
          {item.task ? <span aria-label={item.checked ? "done" : "open"}>{item.checked ? "☑ " : "☐ "}</span> : null}
          {blocks(item.tokens.filter((part) => (part.type as string) !== "checkbox"))}
        </li>
      ));
      return list.ordered ? <ol start={Number(list.start) || 1}>{items}</ol> : <ul>{items}</ul>;
    }
    case "table":
      return <Table table={token as Tokens.Table} />;
    case "hr":
      return <hr />;
    default:
      return <p>{token.raw}</p>;
  }
}

function Table({ table }: { table: Tokens.Table }) {
  return (
    <div class="bleed" tabIndex={0} role="region" aria-label="table">
      <table>
        <thead>
          <tr>
            {table.header.map((cell, index) => (
              <th key={index}>{inline(cell.tokens)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row, at) => (
            <tr key={at}>
              {row.map((cell, index) => (
                <td key={index}>{inline(cell.tokens)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function blocks(tokens: Token[] | undefined): ComponentChildren {
  return (tokens ?? []).map((token, index) => <MemoBlock key={index} token={token} />);
}

const MemoBlock = memo(Block, (before, after) => before.token === after.token);

/** A text of an agent. `grows` while more is to come; afterwards it is read once as a whole. */
export const Markdown = memo(function Markdown({ text, grows }: { text: string; grows?: boolean }) {
  const growing = useRef<Growing | null>(null);
  const tokens = useMemo(() => {
    if (!grows) return read(text);
    growing.current ??= new Growing();
    return growing.current.read(text);
  }, [text, grows]);
  return (
    <div class="prose">
      <Careful text={text}>{blocks(tokens)}</Careful>
    </div>
  );
});
