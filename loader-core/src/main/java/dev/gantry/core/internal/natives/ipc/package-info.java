// SPDX-License-Identifier: Apache-2.0
/// The native calls by which processes share memory: sockets that pass descriptors, memory files,
/// and CUDA's shareable handles.
@NullMarked
package dev.gantry.core.internal.natives.ipc;

import org.jspecify.annotations.NullMarked;
