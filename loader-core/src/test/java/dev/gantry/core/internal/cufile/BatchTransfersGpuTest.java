// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import org.junit.jupiter.api.Tag;

/// On the libcufile at hand: NVIDIA's on a GPU host. By itself: a submission that libcufile has no buffers
/// for never returns.
@Tag("gpu-alone")
class BatchTransfersGpuTest extends BatchTransfersContract {}
