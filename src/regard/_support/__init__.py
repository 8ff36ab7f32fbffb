"""Support code that several packages use; not public.

- Files: `files` (atomic write, lock, cleanup), `reading` (bounded, UTF-8), `strict_json`, `toml`,
  `checksums`, `user_cache`.
- Arguments and settings: `arguments`, `settings` (conversion and checks of values).
- Process: `resources` (memory, cores, threads), `worker_pool` (of this process and others),
  `progress`, `extras` (optional dependencies).
- torch: `torch_modes` (autocast, transforms, precision), `linear` (products with oneDNN).
- Calls and messages: `observers`, `entered_context`, `text` (escaping, plurals).
"""
