import { mount } from 'svelte';
import './page.css';
import { signIn } from './api/sign-in';
import App from './App.svelte';
import { system } from './lib/system';
import SignInError from './parts/SignInError.svelte';

const target = document.getElementById('app');
const why = await signIn();
if (target && why) mount(SignInError, { target, props: { why } });
else if (target) {
  mount(system ? (await import('./Operations.svelte')).default : App, { target });
}
