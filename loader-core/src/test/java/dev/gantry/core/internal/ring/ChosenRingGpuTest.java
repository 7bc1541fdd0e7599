// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import org.junit.jupiter.api.Tag;

/// Rings whose transport the transfer engine chooses.
@Tag("gpu")
class ChosenRingGpuTest extends DeviceRingContract {}
