// SPDX-License-Identifier: Apache-2.0
/// Files of the Hugging Face hub: `hf://OWNER/NAME`. They are kept in the cache folder that Python's `huggingface_hub`
/// uses, too: see `docs/hub.md`.
@NullMarked
package dev.gantry.core.internal.hub;

import org.jspecify.annotations.NullMarked;
