//! An optional byte string; the empty one stands for none (a class file is never empty).
use serde::{Deserializer, Serializer};

pub(super) fn serialize<S: Serializer>(bytes: &Option<Vec<u8>>, to: S) -> Result<S::Ok, S::Error> {
    super::bytes::serialize(bytes.as_deref().unwrap_or_default(), to)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<u8>>, D::Error> {
    super::bytes::deserialize(from).map(|bytes| (!bytes.is_empty()).then_some(bytes))
}
