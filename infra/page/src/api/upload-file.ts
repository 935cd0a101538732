/** Uploads of files with the forms that the API returns. */
import { BASE, Fault, fault, type Schemas } from './client';
import { authorization } from './access-token.svelte';

type Form = Schemas['FormView'];

const CONNECTION_LOST = 'The connection was lost while the file was sent. Continue the upload when the server is back.';

/** Returns the address of a form. The browser may know a server on this machine under another name than the form has. */
export function address(form: Form): string {
  const url = new URL(form.url, location.href);
  const isHere = ['localhost', '127.0.0.1', '[::1]', '0.0.0.0', '[::]'].includes(url.hostname);
  return isHere ? new URL(url.pathname.replace(/^\//, ''), new URL('.', location.href)).href : url.href;
}

/**
 * Sends a file: first all fields of the form, then the file. A file that has already arrived counts as sent.
 * `XMLHttpRequest` is used because `fetch` does not report the progress of an upload.
 */
export function uploadFile(form: Form, file: Blob, onPart: (part: number) => void): Promise<void> {
  return new Promise((done, fail) => {
    const body = new FormData();
    for (const [name, value] of Object.entries(form.fields)) body.append(name, value);
    body.append('file', file);
    const request = new XMLHttpRequest();
    const to = address(form);
    request.open('POST', to);
    // At any other address the form itself authorizes the upload.
    if (to.startsWith(`${BASE}/`)) for (const [name, value] of Object.entries(authorization())) request.setRequestHeader(name, value);
    request.upload.onprogress = ({ loaded, total }) => onPart(total ? loaded / total : 0);
    request.onload = () => {
      if (request.status < 300 || request.status === 409) done();
      else fail(rejection(request));
    };
    request.onerror = () => fail(new Fault(CONNECTION_LOST));
    request.onabort = () => fail(new Fault('The upload was stopped.'));
    request.send(body);
  });
}

function rejection({ status, responseText }: XMLHttpRequest): Fault {
  // S3 responds with XML, whose message alone is meant for users.
  const inXml = /<Message>([^<]*)<\/Message>/.exec(responseText)?.[1];
  return fault(status, inXml ?? responseText);
}
