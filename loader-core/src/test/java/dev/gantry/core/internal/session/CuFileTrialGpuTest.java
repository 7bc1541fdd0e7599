// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import org.junit.jupiter.api.Tag;

/// On the libcufile at hand: NVIDIA's on a GPU host.
@Tag("gpu")
class CuFileTrialGpuTest extends CuFileTrialContract {}
