/** JSON of the server without loss of digits. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/**
 * Puts numbers that a double cannot represent exactly into quotes.
 *
 * Integers beyond 2^53 become strings with all of their digits. Fractions stay numbers: the server prints doubles with
 * the shortest digits that identify them.
 */
export function quoteLongNumbers(text: string): string {
  let out = "";
  let copied = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === 34) i = stringEnd(text, i);
    else if (c === 45 || (c >= 48 && c <= 57)) {
      const to = numberEnd(text, i);
      const number = text.slice(i, to);
      if (/^-?\d{16,}$/.test(number) && !Number.isSafeInteger(Number(number))) {
        out += `${text.slice(copied, i)}"${number}"`;
        copied = to;
      }
      i = to - 1;
    }
  }
  return copied === 0 ? text : out + text.slice(copied);
}

/** Returns the index of the quote that ends the string which begins at `at`. */
function stringEnd(text: string, at: number): number {
  for (let i = at + 1; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === 92) i++;
    else if (c === 34) return i;
  }
  return text.length;
}

function numberEnd(text: string, at: number): number {
  let i = at + 1;
  for (; i < text.length; i++) {
    const c = text.charCodeAt(i);
    const isPart = (c >= 48 && c <= 57) || c === 46 || c === 69 || c === 101 || c === 43 || c === 45;
    if (!isPart) break;
  }
  return i;
}

/** Parses JSON; integers beyond 2^53 become strings. */
export function parseExact(text: string): Json {
  return JSON.parse(/\d{16}/.test(text) ? quoteLongNumbers(text) : text) as Json;
}
