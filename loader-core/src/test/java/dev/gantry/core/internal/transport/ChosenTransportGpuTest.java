// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import org.junit.jupiter.api.Tag;

/// Loads whose transport the transfer engine chooses.
@Tag("gpu")
class ChosenTransportGpuTest extends TransportContract {}
