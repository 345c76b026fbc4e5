/** A length for a style: Preact adds no unit to numbers. */
export function px(value: number): string {
  return `${value}px`;
}
