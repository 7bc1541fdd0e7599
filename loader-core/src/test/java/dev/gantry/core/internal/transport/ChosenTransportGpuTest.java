// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import org.junit.jupiter.api.Tag;

/// A load that chooses its transport by evidence.
@Tag("gpu")
class ChosenTransportGpuTest extends TransportContract {}
