/** What is announced to those who don't see the page change: one thing at a time. */
export const said = $state({ text: '' });

export function say(text: string): void {
  said.text = text;
}
