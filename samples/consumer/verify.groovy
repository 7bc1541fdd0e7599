// The first tensor of the model that the test gave it.
assert new File(basedir, 'build.log').text.contains('fc1.bias (96)')

// The names by which a module-info requires what this program depends on.
['loader-core': 'dev.gantry.core', 'formats': 'dev.gantry.formats', 'loader-djl': 'dev.gantry.djl'].each { module, name ->
  def folder = new File(localRepositoryPath, "dev/gantry/$module").listFiles().find { it.directory }
  new java.util.jar.JarFile(new File(folder, "$module-${folder.name}.jar")).withCloseable {
    assert it.manifest.mainAttributes.getValue('Automatic-Module-Name') == name
  }
}
// Anything else that a script returns means that the build has failed.
return true
