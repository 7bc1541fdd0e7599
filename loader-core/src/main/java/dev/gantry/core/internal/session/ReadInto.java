// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.Extent;
import dev.gantry.core.Memory;

/// Bytes of a file to be read into memory that is there.
///
/// @param name for messages, such as a tensor's
/// @param memory of the extent's length
public record ReadInto(String name, Extent extent, Memory memory) {}
