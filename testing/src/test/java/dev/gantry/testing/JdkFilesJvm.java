// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing;

/// Runs the suites that have the tag `jdk-files` once more over the JDK's channels, which serve on
/// macOS and Windows.
public abstract class JdkFilesJvm extends SecondJvm {
  protected JdkFilesJvm() {
    super("dev.gantry", "jdk-files", "-Dgantry.files=jdk");
  }
}
