// SPDX-License-Identifier: Apache-2.0
/// Crash-safe writing: a file is there completely or not at all, by aligned writes, trim, fsync,
/// rename, and fsync of the folder.
@NullMarked
package dev.gantry.core.internal.commit;

import org.jspecify.annotations.NullMarked;
