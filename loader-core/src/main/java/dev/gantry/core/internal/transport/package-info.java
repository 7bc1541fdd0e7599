// SPDX-License-Identifier: Apache-2.0
/// Moves bytes between files and memory. [TransportOracle] chooses a transport for each file and range.
@NullMarked
package dev.gantry.core.internal.transport;

import org.jspecify.annotations.NullMarked;
