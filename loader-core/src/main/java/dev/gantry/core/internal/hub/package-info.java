// SPDX-License-Identifier: Apache-2.0
/// Files of the Hugging Face hub: `hf://OWNER/NAME`. Downloaded files are kept in the cache folder
/// of Python's `huggingface_hub`: see `docs/hub.md`.
@NullMarked
package dev.gantry.core.internal.hub;

import org.jspecify.annotations.NullMarked;
