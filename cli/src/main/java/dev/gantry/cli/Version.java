// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import picocli.CommandLine.IVersionProvider;

/// The version that the build wrote into the jar.
final class Version implements IVersionProvider {
  @Override
  public String[] getVersion() {
    String version = GantryCommand.class.getPackage().getImplementationVersion();
    return new String[] {"gantry " + (version == null ? "(not packaged)" : version)};
  }
}
