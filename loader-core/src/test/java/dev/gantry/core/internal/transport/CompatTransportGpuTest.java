// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import org.junit.jupiter.api.Tag;

@Tag("gpu")
class CompatTransportGpuTest extends CompatTransportContract {}
