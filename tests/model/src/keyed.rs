//! What makes states quick to compare and to hash.

use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;

use saga::plan::{Incoming, Plan};
use saga::{Document, Saga};

/// Anything that is compared and hashed by a key that stands for it.
pub(crate) struct Keyed<T> {
    pub(crate) value: Arc<T>,
    key: u64,
}

impl<T> Keyed<T> {
    pub(crate) fn new(value: T, standing_for_it: &impl Hash) -> Self {
        Self { value: Arc::new(value), key: key(standing_for_it) }
    }
}

/// A number that stands for a value.
pub(crate) fn key(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl<T> Clone for Keyed<T> {
    fn clone(&self) -> Self {
        Self { value: Arc::clone(&self.value), key: self.key }
    }
}

impl<T> Hash for Keyed<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

impl<T> PartialEq for Keyed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<T: Debug> Debug for Keyed<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.value.fmt(f)
    }
}

/// The types of a saga. States of the model are compared and hashed, which derived implementations can do only if every
/// type parameter can; a saga cannot, but [`Of`] it can.
pub trait Family: Clone + Debug + PartialEq + Hash + Send + Sync + 'static {
    /// The saga.
    type Saga: Saga;
}

/// Stands for a saga where only its types matter.
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

/// A document, as the saga knows it.
pub(crate) type DocumentOf<F> = Document<State<F>>;
/// A plan for it.
pub(crate) type PlanOf<F> = Plan<State<F>>;
/// A message for it.
pub(crate) type IncomingOf<F> = Incoming<<<F as Family>::Saga as Saga>::Event>;
