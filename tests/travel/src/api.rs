//! The API of the suppliers, and their books in memory.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use messages::StoreError;

/// The reply to a reservation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reservation {
    /// The part is reserved under this code.
    Reserved(String),
    /// The part is not reserved, for this reason.
    Refused(String),
}

/// The API of the suppliers. Calls with the same key have the same result.
#[async_trait]
pub trait BookingApi: Send + Sync {
    /// Reserves an offer.
    ///
    /// # Errors
    /// Returns an error if the outcome is unknown.
    async fn reserve(&self, key: &str, offer: &str) -> Result<Reservation, StoreError>;
    /// Releases a reservation. A reservation with this key that arrives later is refused.
    ///
    /// # Errors
    /// Returns an error if the outcome is unknown.
    async fn release(&self, key: &str) -> Result<(), StoreError>;
}

/// An entry in the books.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Reserved(String),
    Refused(String),
    Released,
}

/// The books of the suppliers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Books(BTreeMap<String, Entry>);

impl Books {
    /// Reserves an offer, unless nothing is available.
    pub fn reserve(&mut self, key: &str, is_available: bool) -> Reservation {
        let code = format!("R{}", self.0.len() + 1);
        let entry = self.0.entry(key.to_owned()).or_insert_with(|| match is_available {
            true => Entry::Reserved(code),
            false => Entry::Refused("nothing is available".to_owned()),
        });
        match entry {
            Entry::Reserved(code) => Reservation::Reserved(code.clone()),
            Entry::Refused(reason) => Reservation::Refused(reason.clone()),
            Entry::Released => Reservation::Refused("it was released".to_owned()),
        }
    }

    /// Releases a reservation, and remembers its key.
    pub fn release(&mut self, key: &str) {
        self.0.insert(key.to_owned(), Entry::Released);
    }

    /// Releases a reservation, but forgets the key of an unknown one.
    pub fn release_known(&mut self, key: &str) {
        self.0.entry(key.to_owned()).and_modify(|entry| *entry = Entry::Released);
    }

    /// Returns what is reserved under keys that begin with this prefix: the rest of each key.
    pub fn reserved<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a str> {
        let reserved = self.0.iter().filter(|(_, entry)| matches!(entry, Entry::Reserved(_)));
        reserved.filter_map(move |(key, _)| key.strip_prefix(prefix))
    }
}

/// Suppliers in this process. Two of five calls fail, and one of them has taken effect.
pub struct UnreliableSuppliers {
    books: Mutex<(Books, u64)>,
    unavailable: Vec<String>,
}

impl UnreliableSuppliers {
    /// Creates suppliers that cannot reserve these offers.
    pub fn without(unavailable: &[&str]) -> Self {
        let unavailable = unavailable.iter().map(|offer| (*offer).to_owned()).collect();
        Self { books: Mutex::default(), unavailable }
    }

    /// Returns the books.
    pub fn books(&self) -> Books {
        self.books.lock().unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    fn call<T>(&self, perform: impl FnOnce(&mut Books) -> T) -> Result<T, StoreError> {
        let mut guard = self.books.lock().unwrap_or_else(PoisonError::into_inner);
        let (books, calls) = &mut *guard;
        *calls += 1;
        match *calls % 5 {
            1 => Err(StoreError::unavailable("calling a supplier", "503")),
            3 => {
                perform(books);
                Err(StoreError::unavailable("calling a supplier", "the reply was lost"))
            }
            _ => Ok(perform(books)),
        }
    }
}

#[async_trait]
impl BookingApi for UnreliableSuppliers {
    async fn reserve(&self, key: &str, offer: &str) -> Result<Reservation, StoreError> {
        let is_available = !self.unavailable.iter().any(|unavailable| unavailable == offer);
        self.call(|books| books.reserve(key, is_available))
    }

    async fn release(&self, key: &str) -> Result<(), StoreError> {
        self.call(|books| books.release(key))
    }
}
