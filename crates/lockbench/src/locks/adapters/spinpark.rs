//! Our Rust API.

super::lock_api::lock_api_adapter!(spinpark);
