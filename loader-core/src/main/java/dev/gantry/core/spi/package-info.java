// SPDX-License-Identifier: Apache-2.0
/// The interfaces that you implement to add a store: [Store] and [StoredFile].
/// `docs/adding-a-store.md` says which files to add.
@NullMarked
package dev.gantry.core.spi;

import org.jspecify.annotations.NullMarked;
