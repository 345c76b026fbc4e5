import type { ComponentChildren, JSX } from "preact";
import { parseMarkdown, type Block, type Inline } from "./markdown.ts";

function inlines(parts: Inline[]): ComponentChildren {
  return parts.map((part, i) => {
    switch (part.kind) {
      case "text":
        return part.text;
      case "code":
        return <code key={i}>{part.text}</code>;
      case "link":
        return (
          <a key={i} class="link" href={part.href} target="_blank" rel="noopener noreferrer">
            {inlines(part.children)}
          </a>
        );
      default: {
        const Tag = part.kind;
        return <Tag key={i}>{inlines(part.children)}</Tag>;
      }
    }
  });
}

/** Headings of a cell are below the name of the notebook, which is of the first level. */
function Heading({ level, children }: { level: number; children: ComponentChildren }): JSX.Element {
  if (level === 1) return <h2 class="level-1">{children}</h2>;
  return level === 2 ? <h3>{children}</h3> : <h4>{children}</h4>;
}

function Table({ head, rows }: { head: Inline[][]; rows: Inline[][][] }): JSX.Element {
  return (
    <table>
      <thead>
        <tr>
          {head.map((cell, i) => (
            <th key={i} scope="col">
              {inlines(cell)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, i) => (
          <tr key={i}>
            {row.map((cell, j) => (
              <td key={j}>{inlines(cell)}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function BlockView({ block }: { block: Block }): JSX.Element {
  switch (block.kind) {
    case "heading":
      return <Heading level={block.level}>{inlines(block.children)}</Heading>;
    case "paragraph":
      return <p>{inlines(block.children)}</p>;
    case "code":
      return <pre>{block.text}</pre>;
    case "quote":
      return <blockquote>{blocks(block.children)}</blockquote>;
    case "list": {
      const items = block.items.map((item, i) => <li key={i}>{blocks(item)}</li>);
      return block.isOrdered ? <ol>{items}</ol> : <ul>{items}</ul>;
    }
    case "table":
      return <Table head={block.head} rows={block.rows} />;
    case "rule":
      return <hr />;
  }
}

function blocks(list: Block[]): ComponentChildren {
  return list.map((block, i) => <BlockView key={i} block={block} />);
}

/** A text in Markdown. */
export function MarkdownView({ text }: { text: string }): JSX.Element {
  return <div class="markdown">{blocks(parseMarkdown(text))}</div>;
}
