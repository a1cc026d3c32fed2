//! The locks of the crate `usync`.

super::lock_api::lock_api_adapter!(usync);
