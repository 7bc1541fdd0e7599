// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import org.junit.jupiter.api.Tag;

/// A ring of which nobody asked for any path.
@Tag("gpu")
class ChosenRingGpuTest extends DeviceRingContract {}
