// SPDX-License-Identifier: Apache-2.0
/// Writes files so that a crash leaves each of them complete or absent: by aligned writes, trim, `fsync`,
/// rename, and `fsync` of the folder.
@NullMarked
package dev.gantry.core.internal.commit;

import org.jspecify.annotations.NullMarked;
