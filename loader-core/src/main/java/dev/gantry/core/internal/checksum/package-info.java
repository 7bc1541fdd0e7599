// SPDX-License-Identifier: Apache-2.0
/// CRC32C checksums of memory, of blocks, and of the bytes of transfers.
@NullMarked
package dev.gantry.core.internal.checksum;

import org.jspecify.annotations.NullMarked;
