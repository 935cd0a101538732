/** Files on their way to where their forms say. */
import { BASE, Fault, fault, type Schemas } from './client';
import { shown } from './door.svelte';

type Form = Schemas['FormView'];

const LOST = 'The connection was lost while the file was sent. It goes on from its beginning when the server is back.';

/** Where a form is sent: a server on this machine may be known to the browser under another of its names. */
export function address(form: Form): string {
  const url = new URL(form.url, location.href);
  const isHere = ['localhost', '127.0.0.1', '[::1]', '0.0.0.0', '[::]'].includes(url.hostname);
  return isHere ? new URL(url.pathname.replace(/^\//, ''), new URL('.', location.href)).href : url.href;
}

/**
 * Sends a file: all fields of the form first, the file last. A file that has arrived before is as good as sent.
 * With XMLHttpRequest, since `fetch` does not tell how much of a body is sent.
 */
export function send(form: Form, file: Blob, onPart: (part: number) => void, leaving?: AbortSignal): Promise<void> {
  return new Promise((done, fail) => {
    const body = new FormData();
    for (const [name, value] of Object.entries(form.fields)) body.append(name, value);
    body.append('file', file);
    const request = new XMLHttpRequest();
    const to = address(form);
    request.open('POST', to);
    // Elsewhere, the form says all that is needed.
    if (to.startsWith(`${BASE}/`)) for (const [name, value] of Object.entries(shown())) request.setRequestHeader(name, value);
    request.upload.onprogress = ({ loaded, total }) => onPart(total ? loaded / total : 0);
    request.onload = () => {
      if (request.status < 300 || request.status === 409) done();
      else fail(refusal(request));
    };
    request.onerror = () => fail(new Fault(LOST));
    request.onabort = () => fail(new Fault('The upload was stopped.'));
    leaving?.addEventListener('abort', () => request.abort(), { once: true });
    request.send(body);
  });
}

function refusal({ status, responseText }: XMLHttpRequest): Fault {
  // S3 answers XML, of which only the message is for people.
  const inXml = /<Message>([^<]*)<\/Message>/.exec(responseText)?.[1];
  return fault(status, inXml ?? responseText);
}
