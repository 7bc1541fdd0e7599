// SPDX-License-Identifier: Apache-2.0
/// Weights that stay in memory when the process that loaded them ends: a server passes descriptors of the memory to
/// clients over a Unix socket.
@NullMarked
package dev.gantry.core.internal.resident;

import org.jspecify.annotations.NullMarked;
