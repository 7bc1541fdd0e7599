// SPDX-License-Identifier: Apache-2.0
/// Weights that stay in memory when the process that loaded them ends: a server gives them to clients
/// over a Unix socket, as descriptors of memory.
@NullMarked
package dev.gantry.core.internal.resident;

import org.jspecify.annotations.NullMarked;
