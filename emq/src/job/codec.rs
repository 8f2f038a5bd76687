//! How a generated payload gets its `Serialize` and `Deserialize`.
//!
//! Derived in the ordinary way, they would depend on the fields' types, and one field that can't be stored would be an
//! error at each place that uses the job. So the payload has them unconditionally, and looks for its [`Wire`], which
//! does depend on the fields, only inside. That a field can't be stored is then one error, where the field stands.

use std::marker::PhantomData;

use serde::{Deserializer, Serializer};

/// The serde of a payload all of whose fields can be stored.
pub trait Wire: Sized {
    /// Serializes the payload.
    fn encode<E: Serializer>(&self, encoder: E) -> Result<E::Ok, E::Error>;

    /// Deserializes a payload.
    fn decode<'de, D: Deserializer<'de>>(decoder: D) -> Result<Self, D::Error>;
}

/// Looks for the [`Wire`] of `T`.
///
/// `Codec::<T>::encode` means the inherent function if `T` has a `Wire`, since those go before the functions of traits;
/// if not, it means that of [`NoWire`], and compiles all the same.
#[derive(Debug)]
pub struct Codec<T>(PhantomData<T>);

impl<T: Wire> Codec<T> {
    /// Serializes the payload.
    pub fn encode<E: Serializer>(payload: &T, encoder: E) -> Result<E::Ok, E::Error> {
        payload.encode(encoder)
    }

    /// Deserializes a payload.
    pub fn decode<'de, D: Deserializer<'de>>(decoder: D) -> Result<T, D::Error> {
        T::decode(decoder)
    }
}

/// Stands in for the [`Wire`] of a payload with a field that can't be stored. It never runs: that field is an error.
pub trait NoWire<T>: Sized {
    /// Never called.
    fn encode<E: Serializer>(_: &T, _: E) -> Result<E::Ok, E::Error> {
        unreachable!("a payload whose fields can't be stored doesn't compile")
    }

    /// Never called.
    fn decode<'de, D: Deserializer<'de>>(_: D) -> Result<T, D::Error> {
        unreachable!("a payload whose fields can't be stored doesn't compile")
    }
}

impl<T> NoWire<T> for Codec<T> {}
