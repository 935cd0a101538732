/**
 * The system that the page operates. A server of another system than the search import writes its name into the page, which
 * then shows only the screens for operators.
 */
export const system = document.querySelector<HTMLMetaElement>('meta[name="system"]')?.content;

/** The name of the page. */
export const product = system ?? 'Search import';

/** Returns a command of operators, as it is typed. */
export const command = (text: string): string => `${system ? `${system}-tools operate` : 'search-import'} ${text}`;

/** Quotes a text for a POSIX shell. */
export const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
