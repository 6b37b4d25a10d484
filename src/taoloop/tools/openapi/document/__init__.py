"""An OpenAPI document as plain data and operations."""
