// SPDX-License-Identifier: Apache-2.0
/// TransferEngine: how bytes travel between files and memory. [TransportOracle] chooses one for each file
/// and range.
@NullMarked
package dev.gantry.core.internal.transport;

import org.jspecify.annotations.NullMarked;
