/**
 * Scores how well `text` matches `query`: its characters must appear in order. Consecutive characters and beginnings of
 * words score higher; `undefined` if the text does not match.
 */
export function fuzzyScore(query: string, text: string): number | undefined {
  const [wanted, lower] = [query.toLowerCase().replaceAll(" ", ""), text.toLowerCase()];
  let score = 0;
  let at = -1;
  for (const c of wanted) {
    const found = lower.indexOf(c, at + 1);
    if (found < 0) return undefined;
    const isStart = found === 0 || /[\s_./(-]/.test(lower[found - 1] as string);
    score += (found === at + 1 ? 4 : 0) + (isStart ? 3 : 0) + 1;
    at = found;
  }
  return score - lower.length / 100;
}
