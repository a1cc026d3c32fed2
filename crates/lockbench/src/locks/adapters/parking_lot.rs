//! The locks of the crate `parking_lot`.

super::lock_api::lock_api_adapter!(parking_lot);
