/** Announcements to users of screen readers, one at a time. */
export const announcement = $state({ text: '' });

export function announce(text: string): void {
  announcement.text = text;
}
