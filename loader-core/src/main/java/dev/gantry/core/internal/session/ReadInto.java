// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.Extent;
import dev.gantry.core.Memory;

/// Bytes of a file to read into memory of the caller.
///
/// @param name the name in messages, such as a tensor's name
/// @param memory memory of the extent's length
public record ReadInto(String name, Extent extent, Memory memory) {}
