// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import dev.gantry.testing.JdkFilesJvm;
import org.junit.jupiter.api.Order;

@Order(Integer.MAX_VALUE)
class JdkFilesJvmTest extends JdkFilesJvm {}
