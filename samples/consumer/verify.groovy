// The first tensor of the model that the test gave it.
assert new File(basedir, 'build.log').text.contains('fc1.bias (96)')
