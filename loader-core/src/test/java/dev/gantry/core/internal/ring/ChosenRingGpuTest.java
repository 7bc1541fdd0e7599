// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import org.junit.jupiter.api.Tag;

/// A ring that chooses its transport by evidence.
@Tag("gpu")
class ChosenRingGpuTest extends DeviceRingContract {}
