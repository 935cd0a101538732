//! Types that make states fast to compare and to hash.

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;

use saga::plan::{IncomingEvent, Plan};
use saga::{Document, Saga};

/// A value that is compared and hashed by a key.
pub(crate) struct KeyedValue<T> {
    pub(crate) value: Arc<T>,
    key: u64,
}

impl<T> KeyedValue<T> {
    pub(crate) fn new(value: T, standing_for_it: &impl Hash) -> Self {
        Self { value: Arc::new(value), key: key(standing_for_it) }
    }
}

impl<T: Hash> KeyedValue<T> {
    /// Creates a value whose key is its own hash.
    pub(crate) fn itself(value: T) -> Self {
        let key = key(&value);
        Self { value: Arc::new(value), key }
    }
}

impl<T: Clone + Hash> KeyedValue<T> {
    /// Changes the value and recomputes its key.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut T)) {
        change(Arc::make_mut(&mut self.value));
        self.key = key(&*self.value);
    }
}

pub(crate) fn key(value: &impl Hash) -> u64 {
    let mut hasher = Mixer::default();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Hashes eight bytes at a time. Every step is invertible, so no input is lost. The hasher need not resist attacks, but
/// must be fast for millions of states.
pub(crate) struct Mixer(u64);

impl Default for Mixer {
    fn default() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }
}

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        words.iter().for_each(|word| self.write_u64(u64::from_le_bytes(*word)));
        let last = rest.iter().fold(rest.len() as u64, |last, byte| (last << 8) | u64::from(*byte));
        self.write_u64(last);
    }

    fn write_u64(&mut self, word: u64) {
        let product = (self.0 ^ word).wrapping_mul(0xd6e8_feb8_6659_fd93);
        self.0 = product ^ (product >> 32);
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(u64::from(word));
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl<T> Clone for KeyedValue<T> {
    fn clone(&self) -> Self {
        Self { value: Arc::clone(&self.value), key: self.key }
    }
}

impl<T> Hash for KeyedValue<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

impl<T> PartialEq for KeyedValue<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<T: Debug> Debug for KeyedValue<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.value.fmt(f)
    }
}

/// The types of a saga. Model states are compared and hashed with derived implementations, which require the same of
/// every type parameter. A saga does not implement these traits, but [`Of`] does.
pub trait Family: Clone + Debug + PartialEq + Hash + Send + Sync + 'static {
    /// The saga.
    type Saga: Saga;
}

/// A marker for the types of a saga.
pub struct Of<S>(PhantomData<fn() -> S>);

impl<S: Saga> Family for Of<S> {
    type Saga = S;
}

impl<S> Clone for Of<S> {
    fn clone(&self) -> Self {
        Self(PhantomData)
    }
}

impl<S> Debug for Of<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Of")
    }
}

impl<S> PartialEq for Of<S> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<S> Hash for Of<S> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

type State<F> = <<F as Family>::Saga as Saga>::State;

/// The saga's document.
pub(crate) type DocumentOf<F> = Document<State<F>>;
/// A plan for the document.
pub(crate) type PlanOf<F> = Plan<State<F>>;
/// A message for the saga.
pub(crate) type IncomingOf<F> = IncomingEvent<<<F as Family>::Saga as Saga>::Event>;
